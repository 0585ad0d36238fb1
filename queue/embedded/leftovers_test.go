package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A process that is killed while a stream is made or deleted leaves a folder with which the server does not become
// healthy. The store opens all the same, and nothing that may hold a message is removed.
func TestWhatIsLeftOfAStreamIsRemoved(t *testing.T) {
	dir := t.TempDir()
	streams := filepath.Join(dir, "jetstream", "$G", "streams")
	for _, s := range []struct {
		name  string
		files []string // with content
		empty []string
	}{
		{".deleted", []string{"msgs/1.blk", server.JetStreamMetaFile, server.JetStreamMetaFileSum}, nil},
		{"begun", nil, nil},
		{"without_sum", []string{server.JetStreamMetaFile}, []string{"msgs/1.blk"}},
		{"damaged", []string{server.JetStreamMetaFile, "msgs/1.blk"}, nil},
		{"empty", []string{server.JetStreamMetaFile, server.JetStreamMetaFileSum}, []string{"msgs/1.blk"}},
		{"full", []string{server.JetStreamMetaFile, server.JetStreamMetaFileSum, "msgs/1.blk"}, nil},
	} {
		for _, name := range slices.Concat(s.files, s.empty) {
			path := filepath.Join(streams, s.name, name)
			var content []byte
			if slices.Contains(s.files, name) {
				content = []byte("x")
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(streams, s.name, "obs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeLeftovers(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(streams)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"damaged", "empty", "full"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%v, want %v: %v", left, want, err)
	}
}
