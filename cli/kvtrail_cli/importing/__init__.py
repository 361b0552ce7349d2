"""What `kvtrail import` is made of."""
