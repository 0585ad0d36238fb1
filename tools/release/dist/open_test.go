package dist

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// unpack returns the files of an archive, without the directory around them.
func unpack(t *testing.T, name string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[inner(f.Name)] = content
		}
		return files
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range untar(t, gunzip(t, content)) {
		files[inner(name)] = f.content
	}
	return files
}

// inner returns the name of a file below the directory that all files of an archive are in.
func inner(name string) string {
	_, below, _ := strings.Cut(name, "/")
	return below
}

func gunzip(t *testing.T, content []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// file is a file of a tar archive or of a package.
type file struct {
	mode    int64
	content []byte
}

// untar returns the regular files of a tar archive.
func untar(t *testing.T, content []byte) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[strings.TrimPrefix(h.Name, "./")] = file{h.Mode, content}
		}
	}
}
