package ir

// The meta families of every target table: which items a row holds, and which ones it held.
const (
	LiveFamily = "_tr_live"
	DeadFamily = "_tr_dead"
)

// Limits of Bigtable, checked before a write is sent.
// Source: https://cloud.google.com/bigtable/quotas#limits-data-size
const (
	MaxRowKey    = 4 << 10
	maxQualifier = 16 << 10
	MaxCell      = 100 << 20
	MaxRow       = 256 << 20
	MaxMutations = 100_000
	MaxFamilies  = 100

	MaxTime = 9_000_000_000_000_000 // ms: cell times are microseconds in 64 bits
)
