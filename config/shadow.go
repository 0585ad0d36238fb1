package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Shadow sets how `replicator shadow` makes the application's reads in Bigtable too.
type Shadow struct {
	// Part of the requests that is counted and replayed, as in 1% or 0.01.
	Share Part `yaml:"share"`
	// App profile of the reads in Bigtable, so that its metrics show them apart. Default:
	// bigtable.app_profile.
	AppProfile string `yaml:"app_profile"`
	// Read capacity units a second of each table, for strong reads of items that differed at first.
	SettleUnits float64 `yaml:"settle_units"`
	// Requests and answers that wait between front and engine. What does not fit is dropped from the
	// count, never from the way to DynamoDB.
	Memory Size `yaml:"memory"`
}

// Part is a part of a whole, from 0 to 1, written as 1% or 0.01.
type Part float64

// UnmarshalText reads a number from 0 to 1, or a percentage.
func (p *Part) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	v, err := strconv.ParseFloat(digits, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) { // as of NaN
		return fmt.Errorf("%q is no part of a whole: write 1%%, or a number from 0 to 1", text)
	}
	*p = Part(v)
	return nil
}

// MarshalText writes a percentage.
func (p Part) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(p)*100, 'f', -1, 64) + "%"), nil
}

// shadow checks the bounds of a shadow run.
func (r *report) shadow(s *Shadow) {
	r.atLeast("shadow.memory", s.Memory, 4<<20, 32<<20, "an exchange can be two MiB long")
	if !(s.SettleUnits > 0) && !r.reported("shadow.settle_units") {
		r.fault("bad_value", "shadow.settle_units", "for example 50", "%v is not above 0", s.SettleUnits)
	}
}
