-- The probability that the span is a mention; before, the column held the score of mention and concept together.
ALTER TABLE marks RENAME COLUMN place TO p_mention;
