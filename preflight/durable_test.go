package preflight

import (
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

// TestDirectoriesThatCannotBeSyncedAreRefused: with a log and an archive elsewhere, run works on
// every system.
func TestDirectoriesThatCannotBeSyncedAreRefused(t *testing.T) {
	local, far := config.Default(), config.Default()
	local.Queue.Dir, local.Archive.URL = "log", "file:///archive"
	far.Queue.Dir, far.Queue.URL, far.Archive.URL = "", "nats://queue:4222", "s3://bucket/prefix"
	for _, c := range []struct {
		cfg   *config.Config
		syncs bool
		want  string
	}{
		{&local, true, ""}, {&far, true, ""}, {&far, false, ""},
		{&local, false, "queue.dir: set queue.url to a NATS cluster; archive.url: set archive.url to s3://"},
	} {
		var got []string
		for _, p := range notDurable(c.cfg, c.syncs) {
			hint, _, _ := strings.Cut(p.Hint, ", ")
			got = append(got, p.Path+": "+hint)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%q, want %q", s, c.want)
		}
	}
}
