"""The use case ``fix``: edits that findings suggest, proved in rounds against the unchanged program, as one patch."""
