"""What a report says of the machine under the job: memory, system calls, links and clocks of hosts."""
