package change

// Millis is a time on the clock of the service that reported it: unix milliseconds.
type Millis = int64

// Version orders the changes of one item: milliseconds of a shard's hybrid clock, see Clock.
type Version = int64

// SequenceNumber is DynamoDB's position of a record in its shard: 21 to 40 decimal digits, ordered as numbers.
type SequenceNumber = string
