package change

import (
	"fmt"
	"testing"
	"time"
)

// TestWhatNeverExpires: DynamoDB deletes nothing whose time is more than five years past, or 0.
func TestWhatNeverExpires(t *testing.T) {
	at := MillisOf(time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC))
	now, years := int64(at)/1000, int64(5*365*24*3600)
	for expiry, want := range map[string]bool{
		fmt.Sprint(now): true, fmt.Sprint(now + 1): false, fmt.Sprint(now - years): true,
		fmt.Sprint(now - years - 1): false, "0": false, "-1": false, "": false, "x": false,
	} {
		if got := HadExpired(expiry, at); got != want {
			t.Errorf("%q: %v", expiry, got)
		}
	}
}
