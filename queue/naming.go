package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// subjectPrefix begins the subjects of all logs.
const subjectPrefix = "tailrace."

// subjects are the subjects of a log and its dead letters. They contain the pipeline's random
// token, so that no other program publishes into the log by chance.
type subjects struct{ Entry, Snapshot, Claim, Letters, Requests, Archive string }

// streamName returns the name of a table's stream. The names of pipeline and table in it are
// shortened and stripped of characters that stream names do not allow; the hash keeps it unique.
func streamName(pipeline, table string) string {
	return streamsOf(pipeline) + sanitize(table) + "_" + hashOf(pipeline+"\x00"+table)
}

// streamsOf returns the prefix of the names of a pipeline's streams. Streams of another pipeline
// may have it too.
func streamsOf(pipeline string) string { return conn.StreamPrefix + sanitize(pipeline) + "_" }

// presenceSubject returns the subject below which the processes of a pipeline exchange messages.
// It is outside of all streams, so that nothing is stored.
func presenceSubject(pipeline string) string {
	return "tailrace-presence." + sanitize(pipeline) + "-" + hashOf(pipeline)
}

// subjectsOf returns the subjects of a table's log, which has a token.
func subjectsOf(token, table string) subjects {
	base := subjectPrefix + token + "." + sanitize(table) + "-" + hashOf(table)
	return subjects{
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

// hashOf returns eight hexadecimal digits of the SHA-256 of s.
func hashOf(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:4])
}

// nudgeSubject returns the subject for requests of a beat from the owner of a log. It is outside
// of the log's stream.
func nudgeSubject(token, table string) string { return "tailrace-nudge." + token + "." + hashOf(table) }

// rehearsedSubject returns the subject for what rehearsals of a pipeline's cutovers show. It is
// outside of all streams.
func rehearsedSubject(pipeline string) string {
	return "tailrace-nudge.rehearsed." + sanitize(pipeline) + "-" + hashOf(pipeline)
}

// The names of the streams that a table may have besides its log. Each is created by the first
// write to it.
func lettersStream(log string) string  { return log + "_letters" }
func requestsStream(log string) string { return log + "_requests" }
func archiveStream(log string) string  { return log + "_archive" }
