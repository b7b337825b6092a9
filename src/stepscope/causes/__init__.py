"""Why the steps take as long as they do: each module explains one kind of loss, from a view of the session."""
