package protocol

import (
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
)

// LogNote is what is noted outside of a log about it: an entry of it that the server has
// acknowledged to its owner.
type LogNote struct {
	Created time.Time // of the log
	Seq     uint64    // of the entry
	Hash    checkpoint.Hash
}

// LogSeen is what the server that keeps a log has where a note points to. It is read after a claim
// of the log was acknowledged, so that the log's leader has answered.
type LogSeen struct {
	Created     time.Time
	First, Last uint64 // sequences of the oldest and of the newest message
	There       bool   // the entry of the note's sequence is there
	Hash        checkpoint.Hash
}

// LogCopy is whether a log is the one that a note is about, or an older copy of it.
type LogCopy uint8

// The answers of JudgeLog.
const (
	LogUnjudged LogCopy = iota // there is no note, or it is about another log
	LogWhole                   // the log holds the noted entry, or was trimmed behind it
	LogBehind                  // the log ends before the noted entry: it is an older copy
	LogForked                  // another entry has the sequence of the noted one: an older copy that has grown since
)

// Older reports whether the log is an older copy.
func (c LogCopy) Older() bool { return c == LogBehind || c == LogForked }

// JudgeLog compares a log with what is noted about it; n may be nil. A message that is missing
// within the log proves nothing: the fold finds it, and either refuses the log or goes back with it
// and reads the source again from there.
//
// Rule 13: one answer is no proof that a log lacks what was acknowledged. The note is the server's
// own earlier acknowledgement, and a later one, the acknowledgement of the claim, stands before the
// look at the log.
func JudgeLog(n *LogNote, seen LogSeen) LogCopy {
	switch {
	case n == nil, !n.Created.Equal(seen.Created):
		return LogUnjudged
	case seen.Last < n.Seq:
		return LogBehind
	case seen.There && seen.Hash != n.Hash:
		return LogForked
	}
	return LogWhole
}
