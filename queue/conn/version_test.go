package conn

import "testing"

func TestOldServersAreRefused(t *testing.T) {
	for version, want := range map[string]bool{
		"2.9.25": false, "2.10.0": true, "2.10.22-RC.1": true, "2.12.3": true, "3.0.0": true, "1.4.1": false, "2.2": false,
		"2.100.0": true, "dev": true, "": true,
	} {
		if got := newEnough(version); got != want {
			t.Errorf("NATS %q is new enough: %v", version, got)
		}
	}
}
