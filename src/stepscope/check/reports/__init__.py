"""What a check found, as text, SARIF and the forms of code hosts."""
