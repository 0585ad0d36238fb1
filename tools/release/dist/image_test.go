package dist

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImageHasTheProgramOfTheArchive, byte by byte, though it was built by another command: the
// build is reproducible.
func TestImageHasTheProgramOfTheArchive(t *testing.T) {
	r := opened(t)
	r.compareImage(t, "image", "replicator", r.archive)
	r.compareImage(t, "bulk-image", "replicator-bulk", r.bulk)
}

// compareImage compares the program of the image in a folder with that of the archives.
func (r release) compareImage(t *testing.T, folder, name string, archive func(platform string) string) {
	t.Helper()
	top, err := layout.ImageIndexFromPath(filepath.Join(r.dir, folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil || len(list.Manifests) != 1 ||
		list.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != r.version {
		t.Fatalf("%+v, %v", list, err)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	all, err := index.IndexManifest()
	if err != nil || len(all.Manifests) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, d := range all.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		const label = "org.opencontainers.image."
		if l := c.Config.Labels; l[label+"version"] != r.version || l[label+"revision"] != r.commit {
			t.Errorf("labels %v", l)
		}
		want := unpack(t, filepath.Join(r.dir, archive("linux_"+d.Platform.Architecture)))[name]
		if got := program(t, img, name); got != string(want) {
			t.Errorf("%s: the program has %d bytes, that of the archive %d other ones", d.Platform, len(got), len(want))
		}
	}
}

// program returns the program of an image.
func program(t *testing.T, img v1.Image, name string) string {
	t.Helper()
	flat := mutate.Extract(img)
	defer flat.Close()
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatal("the image has no program")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != name {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}
