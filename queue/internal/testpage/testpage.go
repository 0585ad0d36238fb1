// Package testpage makes pages of records for the tests of package queue and the packages below it.
package testpage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

const (
	// Stream is the stream of all pages.
	Stream = "arn:aws:dynamodb:eu-west-1:1:table/Orders/stream/2026-01-01T00:00:00.000"
	// Second is when all records were created: unix milliseconds.
	Second = change.Millis(1_790_000_000_000)
)

// After returns a page of n records of shard-1 behind a position, each with two images of size
// bytes.
func After(t testing.TB, from change.Position, clock change.Version, n, size int) *change.Page {
	t.Helper()
	next := 1
	if from.After != "" {
		if _, err := fmt.Sscanf(string(from.After), "1%020d", &next); err != nil {
			t.Fatal(err)
		}
		next++
	}
	rng := rand.New(rand.NewPCG(uint64(next), 1))
	var b strings.Builder
	b.WriteString(`{"Records":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"awsRegion":"eu-west-1","dynamodb":{"ApproximateCreationDateTime":%d,`+
			`"Keys":{"pk":{"S":"item-%d"}},`+
			`"NewImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},"OldImage":{"pk":{"S":"item-%d"},"v":{"S":"%s"}},`+
			`"SequenceNumber":"%s","SizeBytes":%d,"StreamViewType":"NEW_AND_OLD_IMAGES"},`+
			`"eventID":"e%d","eventName":"MODIFY","eventSource":"aws:dynamodb","eventVersion":"1.1"}`,
			Second/1000, (next+i)%97, (next+i)%97, text(rng, size), (next+i)%97, text(rng, size), Sequence(next+i), size, next+i)
	}
	b.WriteString(`]}`)
	recs, _, err := change.ScanPage([]byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &change.Page{
		Feed: change.Feed{Stream: Stream, Shard: "shard-1"}, From: from, To: from, ClockFrom: clock, Clock: clock,
		Date: Second, Records: recs, Bytes: b.Len(),
	}
	tick := change.Clock(clock)
	for i := range recs {
		recs[i].Version = tick.Next(recs[i].Created)
		recs[i].KeyHash = change.HashKey(recs[i].Keys)
		p.To, p.Clock = change.Position{After: change.SequenceNumber(recs[i].SequenceNumber)}, recs[i].Version
	}
	return p
}

// Sequence returns the sequence number of the nth record.
func Sequence(n int) change.SequenceNumber { return change.SequenceNumber(fmt.Sprintf("1%020d", n)) }

const characters = "abcdefghijklmnopqrstuvwxyz0123456789"

// text has about the entropy of real attributes: half random, half repeated words.
func text(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		if i/16%2 == 0 {
			b[i] = characters[rng.IntN(len(characters))]
		} else {
			b[i] = "electrical-goods"[i%16]
		}
	}
	return string(b)
}
