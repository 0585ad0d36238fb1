// Package naming names the streams and subjects of a pipeline. All versions of the program that run at the same time
// must use the same names.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Prefix is that of the subjects of all logs.
const Prefix = "tailrace."

// Subjects are those of a log and its dead letters. They contain the pipeline's random token, so that no other program
// publishes into the log by chance.
type Subjects struct{ Entry, Snapshot, Claim, Letters, Requests, Archive string }

// Stream returns the name of a table's stream. The names of pipeline and table in it are shortened and stripped of
// characters that stream names do not allow; the hash keeps it unique.
func Stream(pipeline, table string) string {
	return StreamsOf(pipeline) + sanitize(table) + "_" + Hash(pipeline+"\x00"+table)
}

// StreamsOf returns what the names of a pipeline's streams begin with. Those of another pipeline may
// begin so, too.
func StreamsOf(pipeline string) string { return conn.StreamPrefix + sanitize(pipeline) + "_" }

// Presence returns the subject below which the processes of a pipeline hear of each other. It is outside of all
// streams, so that nothing is stored.
func Presence(pipeline string) string {
	return "tailrace-presence." + sanitize(pipeline) + "-" + Hash(pipeline)
}

// SubjectsOf returns the subjects of a table's log, which has a token.
func SubjectsOf(token, table string) Subjects {
	base := Prefix + token + "." + sanitize(table) + "-" + Hash(table)
	return Subjects{
		Entry: base + ".e", Snapshot: base + ".snap", Claim: base + ".claim", Letters: base + ".letter.",
		Requests: base + ".request.", Archive: base + ".archive.",
	}
}

// sanitize keeps the characters of s that stream names and subjects allow.
func sanitize(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), 40)]
}

// Hash returns eight hexadecimal digits of the SHA-256 of s.
func Hash(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:4])
}

// Nudge returns the subject on which the owner of a log is asked for a beat. It is outside of the log's stream.
func Nudge(token, table string) string { return "tailrace-nudge." + token + "." + Hash(table) }

// The names of the streams that a table may have beside its log, each of which is made the first time that somebody
// writes to it.
func Letters(log string) string  { return log + "_letters" }
func Requests(log string) string { return log + "_requests" }
func Archive(log string) string  { return log + "_archive" }
