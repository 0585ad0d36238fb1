package apply

import (
	"math"
	"testing"
)

// TestSizeThatAnEntryClaimsIsNotBelievedBeyondAnyFrame: the data behind it is looked at later, by
// whoever unpacks it.
func TestSizeThatAnEntryClaimsIsNotBelievedBeyondAnyFrame(t *testing.T) {
	for size, want := range map[int]int{-1: 1 << 16, 0: 1 << 16, 1 << 16: 1 << 16, 1<<16 + 1: 1 << 17, 3 << 20: 4 << 20,
		math.MaxInt: 1 << largestClass} {
		buf := getBuffer(bufferClass(size))
		if cap(*buf) != want {
			t.Errorf("%d bytes get a buffer of %d, want %d", size, cap(*buf), want)
		}
		putBuffer(buf)
		if again := getBuffer(bufferClass(size)); cap(*again) < min(max(size, 0), 1<<largestClass) {
			t.Errorf("%d bytes get a used buffer of %d", size, cap(*again))
		}
	}
}
