"""From parameters and data to a learned map: the plan, the parts it names, the trainer."""
