package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const compose = `services:
  nats:
    image: library/nats:2.15.2-alpine
  table:
    image: amazon/aws-cli:2.31.0
  pinned:
    image: some/thing:1.0.0@sha256:0000000000000000000000000000000000000000000000000000000000000000
  # image: the/comment:1.0.0 is about nothing
`

// stocked returns the address of a registry in this process, with an index for several processors
// under each name.
func stocked(t *testing.T, names ...string) (address string, indexes map[string]v1.ImageIndex) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address, indexes = strings.TrimPrefix(server.URL, "http://"), map[string]v1.ImageIndex{}
	for _, n := range names {
		index, err := random.Index(64, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(n, name.WithDefaultRegistry(address))
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.WriteIndex(ref, index); err != nil {
			t.Fatal(err)
		}
		indexes[n] = index
	}
	return address, indexes
}

// logged runs the function and returns what it logged.
func logged(t *testing.T, f func()) string {
	t.Helper()
	var lines bytes.Buffer
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	f()
	return lines.String()
}

func TestEachTagGetsItsDigest(t *testing.T) {
	address, indexes := stocked(t, "library/nats:2.15.2-alpine", "amazon/aws-cli:2.31.0")
	want := compose
	for n, index := range indexes {
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		want = strings.Replace(want, n, n+"@"+digest.String(), 1)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(compose), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := logged(t, func() {
		if err := run(t.Context(), []string{"-in", in, "-out", out, "-registry", address}); err != nil {
			t.Fatal(err)
		}
	})
	got, err := os.ReadFile(out)
	if err != nil || string(got) != want || lines != "" {
		t.Errorf("wrote\n%s\nwant\n%s\n%v %s", got, want, err, lines)
	}
}

// TestTagsStayWhereNoRegistryIs: the text is as it was, and a line says what that means.
func TestTagsStayWhereNoRegistryIs(t *testing.T) {
	server := httptest.NewServer(nil)
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	lines := logged(t, func() {
		got, err := fill(t.Context(), compose, address)
		if err != nil || got != compose {
			t.Errorf("%v, and\n%s", err, got)
		}
	})
	if !strings.Contains(lines, "library/nats:2.15.2-alpine keeps its tag") ||
		!strings.Contains(lines, "NOT PINNED: 2 of 2 images have a tag only") {
		t.Errorf("said %q", lines)
	}
}

// TestImageThatIsNotThereFailsTheRelease: somebody mistyped the tag.
func TestImageThatIsNotThereFailsTheRelease(t *testing.T) {
	address, _ := stocked(t, "library/nats:2.15.2-alpine")
	_, err := fill(t.Context(), compose, address)
	if err == nil || !strings.Contains(err.Error(), "look for the image amazon/aws-cli:2.31.0") {
		t.Errorf("%v", err)
	}
}
