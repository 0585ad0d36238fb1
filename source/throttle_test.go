package source

import (
	"testing"
	"time"
)

// TestThrottlingIsASpellAndNotASingleRead: DynamoDB throttles a read now and then; that is no
// trouble.
func TestThrottlingIsASpellAndNotASingleRead(t *testing.T) {
	var x Throttles
	at := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	is := func(after time.Duration, want bool) {
		t.Helper()
		if since, ok := x.Since("Orders", at.Add(after)); ok != want || ok && !since.Equal(at) {
			t.Errorf("after %v: throttled since %v, %v; want %v", after, since, ok, want)
		}
	}
	is(0, false)
	x.Note("Orders", at)
	is(time.Second, false)
	for s := range 20 {
		x.Note("Orders", at.Add(time.Duration(s)*time.Second))
	}
	is(20*time.Second, true)
	is(49*time.Second, true)
	is(50*time.Second, false)
	x.Note("Orders", at.Add(time.Hour))
	is(time.Hour, false)
	if _, ok := x.Since("Users", at.Add(20*time.Second)); ok {
		t.Error("another table is throttled")
	}
}
