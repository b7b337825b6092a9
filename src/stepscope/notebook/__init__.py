"""``%load_ext stepscope``: one cell measured in a kernel that runs already, and the commands on what its cells did."""
