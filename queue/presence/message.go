package presence

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Message is the report that a process publishes about itself. A process that owns many logs splits
// it into several parts of the same number.
//
// Ages are milliseconds before the message was sent: no clock is compared between machines.
type Message struct {
	Member  string `json:"member"` // name and random id of this process start
	Build   string `json:"build"`  // version of the program
	Reads   int    `json:"reads"`  // highest format of logs that it reads
	Number  uint64 `json:"number"` // of this process's messages: grows
	Part    int    `json:"part,omitempty"`
	Parts   int    `json:"parts,omitempty"`
	Leaving bool   `json:"leaving,omitempty"` // the process ends: it takes no more logs
	Gone    bool   `json:"gone,omitempty"`    // and has ended: nothing is to be expected of it
	// Services holds, for each service that the process calls, how it answers.
	Services map[string]Service `json:"services,omitempty"`
	Moved    int64              `json:"moved"` // age of the last move of a log that it gave or took; -1: none yet
	Logs     []Log              `json:"logs,omitempty"`
	Wanted   []string           `json:"wanted,omitempty"` // tables of its configuration that it can take
}

// Service is how a service answers a process.
type Service struct {
	Success int64 `json:"success"`           // age of the last call that succeeded; -1: none yet
	Failing int64 `json:"failing,omitempty"` // for how long no call has succeeded that was made; 0: it does not fail
}

// Log is a log that the process owns.
type Log struct {
	Table    string  `json:"table"`
	Epoch    uint64  `json:"epoch"` // of its claim
	Seq      uint64  `json:"seq"`   // that it appended last
	Appended int64   `json:"appended"`
	Rate     float64 `json:"rate"`  // changes per second, over a minute
	Moved    int64   `json:"moved"` // age of the move that brought the log here; -1: it came otherwise
}

// logsPerPart keeps a message far below what every server takes (1 MiB): names of tables have up to
// 255 bytes.
const logsPerPart = 500

// maxParts bounds what is kept of a message that never becomes complete.
const maxParts = 200

// split divides a message into parts.
func (m Message) split() (parts []Message) {
	logs := slices.Collect(slices.Chunk(m.Logs, logsPerPart))
	wanted := slices.Collect(slices.Chunk(m.Wanted, logsPerPart))
	m.Parts = max(1, len(logs), len(wanted))
	for m.Part = range m.Parts {
		m.Logs, m.Wanted = at(logs, m.Part), at(wanted, m.Part)
		parts = append(parts, m)
	}
	return parts
}

// at returns an element of a list; the zero value behind its end.
func at[T any](list []T, i int) (x T) {
	if i < len(list) {
		x = list[i]
	}
	return x
}

// decode reads a message. What a newer build adds is ignored.
func decode(data []byte) (m Message, err error) {
	if err = json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read presence message: %w", err)
	}
	if m.Member == "" || m.Parts < 1 || m.Parts > maxParts || m.Part < 0 || m.Part >= m.Parts {
		return m, fmt.Errorf("read presence message: part %d of %d of member %q", m.Part, m.Parts, m.Member)
	}
	return m, nil
}

// Age converts an age of a message; false for -1, unknown. An age beyond what a Duration holds is
// the longest one.
func Age(ms int64) (time.Duration, bool) {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, ms >= 0
}

// AgeOf is the age of a time in a message; -1 for the zero time.
func AgeOf(at, now time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return max(0, now.Sub(at).Milliseconds())
}
