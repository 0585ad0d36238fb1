package outcome

import "testing"

// TestHaltsThatFollowFromTheRow: these last until the row is read and agrees. Others are over once
// the table works.
func TestHaltsThatFollowFromTheRow(t *testing.T) {
	for code, want := range map[string]bool{
		CodeRowMissing: true, CodeLogLost: true, CodeLogOlder: true, CodeRefused: true,
		CodeLogUnread: false, CodeSourceGone: false, CodeMissing: false, CodeRefusedAll: false, "": false,
	} {
		if got := ByRow(code); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}
