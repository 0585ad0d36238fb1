package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// nonroot is the user and group of the image. The chart and docker-compose.yml count on the number.
const nonroot = 65532

// entry is a file or a directory of the image.
type entry struct {
	name    string // ends in / for a directory
	mode    int64
	owner   int
	content []byte
}

// sharedLayer returns all files that are the same on every processor.
func sharedLayer(o Options) (v1.Layer, error) {
	roots, err := authorities()
	if err != nil {
		return nil, err
	}
	const notices = "usr/share/doc/tailrace/"
	entries := []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, content: []byte("nonroot:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, content: []byte("nonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n")},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: roots},
		{name: "tmp/", mode: 0o755, owner: nonroot},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: notices, mode: 0o755},
	}
	for _, name := range []string{"LICENSE", "THIRD-PARTY-NOTICES.txt"} {
		text, err := os.ReadFile(filepath.Join(o.Licenses, name))
		if err != nil {
			return nil, fmt.Errorf("read licenses: %w", err)
		}
		entries = append(entries, entry{name: notices + name, mode: 0o644, content: text})
	}
	if !o.bulk() {
		zones, err := os.ReadFile(o.Zones)
		if err != nil {
			return nil, fmt.Errorf("read time zones: %w", err)
		}
		entries = append(entries,
			entry{name: "data/", mode: 0o755, owner: nonroot},
			entry{name: "usr/share/zoneinfo.zip", mode: 0o644, content: zones})
	}
	return layer(entries, o.Time)
}

// programLayer returns the layer with the program, and what is built with it, alone, so that a new
// version shares the other one.
func programLayer(o Options, arch string) (v1.Layer, error) {
	program, err := os.ReadFile(o.Programs[arch])
	if err != nil {
		return nil, fmt.Errorf("read program: %w", err)
	}
	entries := []entry{{name: o.program(), mode: 0o755, content: program}}
	if o.bulk() {
		boot, err := os.ReadFile(o.Boot[arch])
		if err != nil {
			return nil, fmt.Errorf("read Beam's program: %w", err)
		}
		entries = append(entries, entry{name: "opt/", mode: 0o755}, entry{name: "opt/beam/", mode: 0o755},
			entry{name: "opt/beam/boot", mode: 0o755, content: boot})
	}
	return layer(entries, o.Time)
}

// layer returns a layer of the entries, the same bytes for the same entries.
func layer(entries []entry, at time.Time) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if e.content == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("write %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	})
}
