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
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestFileIsFoundByItsTagAndType: as Artifact Hub asks a registry for it.
func TestFileIsFoundByItsTagAndType(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/charts/tailrace"
	file, want := filepath.Join(t.TempDir(), "artifacthub-repo.yml"), []byte("repositoryID: an-id\n")
	if err := os.WriteFile(file, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{file, repository}); err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(repository + ":artifacthub.io")
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != configType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != fileType {
		t.Fatalf("manifest %+v", manifest)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("pushed %q", got)
	}
}
