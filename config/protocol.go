package config

import "time"

// Protocol holds the periods of the protocol; the defaults are the values for production.
type Protocol struct {
	// How long a log must be silent before another owner may claim it.
	ClaimTTL Duration `yaml:"claim_ttl"`
	// Period of listing the tables of DynamoDB for selections.
	Find Duration `yaml:"find"`
	// Longest time without an entry from the owner. Default: a third of claim_ttl.
	Beat Duration `yaml:"beat"`
	// Period of the complete shard listing.
	Listing Duration `yaml:"listing"`
	// Period of asking whether the table has a new stream.
	Describe Duration `yaml:"describe"`
	// Period of trimming the log.
	Trim Duration `yaml:"trim"`
	// Shortest time between two marks of a sink.
	MarkInterval Duration `yaml:"mark_interval"`
	// How long a halted table waits before it is tried again.
	RetryHalted Duration `yaml:"retry_halted"`
	// How long Dates of DynamoDB that differ from the expected time must advance with it until they
	// are believed; less than a millisecond: at once, because the sandbox's clock jumps.
	DateTrust Duration `yaml:"date_trust"`
	// How long DynamoDB must go on with an answer about a shard that only the same answer confirms.
	Patience Duration `yaml:"patience"`
	// How far versions may run ahead of event time before a new reservation must be stored in the
	// state row.
	Lead Duration `yaml:"lead"`
}

// defaultProtocol returns the periods for production.
func defaultProtocol() Protocol {
	return Protocol{
		ClaimTTL:     Duration(15 * time.Second),
		Listing:      Duration(5 * time.Minute),
		Describe:     Duration(30 * time.Second),
		Find:         Duration(time.Minute),
		Trim:         Duration(10 * time.Second),
		MarkInterval: Duration(time.Second),
		RetryHalted:  Duration(time.Minute),
		Lead:         Duration(10 * time.Minute),
		DateTrust:    Duration(2 * time.Minute),
		Patience:     Duration(10 * time.Second),
	}
}

// protocol checks the periods of the protocol, and warns that they are changed.
func (r *report) protocol(t *Protocol) {
	for key, d := range map[string]Duration{
		"claim_ttl": t.ClaimTTL, "beat": t.Beat, "listing": t.Listing, "describe": t.Describe, "trim": t.Trim,
		"mark_interval": t.MarkInterval, "find": t.Find,
		"retry_halted": t.RetryHalted, "lead": t.Lead, "date_trust": t.DateTrust, "patience": t.Patience,
	} {
		r.positive("testing."+key, d)
	}
	if t.Beat > t.ClaimTTL/3 && t.ClaimTTL > 0 {
		r.fault("bad_value", "testing.beat", "a third of claim_ttl or less",
			"an owner that is silent for %s loses a log that may be claimed after %s", t.Beat, t.ClaimTTL)
	}
	if r.Written("testing") {
		r.warn("testing", "testing", "remove the block in production", "the periods of the protocol were changed for testing")
	}
}
