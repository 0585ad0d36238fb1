package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// made runs the command with programs that are only text, and returns the directory of the layout.
func made(t *testing.T) string {
	t.Helper()
	return madeOf(t, "-zones", "zoneinfo.zip")
}

// madeBulk is made for replicator-bulk.
func madeBulk(t *testing.T) string {
	t.Helper()
	return madeOf(t, "-boot", "boot")
}

// madeOf is made with one more flag, which names a file or a directory.
func madeOf(t *testing.T, flag, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "boot"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"linux-amd64": "program amd64", "linux-arm64": "program arm64", "LICENSE": "license",
		"THIRD-PARTY-NOTICES.txt": "notices", "zoneinfo.zip": "zones",
		"boot/linux-amd64": "boot amd64", "boot/linux-arm64": "boot arm64",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "image")
	err := run(t.Context(), []string{
		"-programs", dir, "-licenses", dir, flag, filepath.Join(dir, path), "-version", "1.2.3",
		"-revision", "abc", "-time", "1700000000", "-out", out,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// images returns the images of a layout by processor.
func images(t *testing.T, dir string) map[string]v1.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	all, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]v1.Image{}
	for _, d := range all.Manifests {
		img, err := index.Image(d.Digest)
		if err != nil || d.Platform.OS != "linux" {
			t.Fatal(d.Platform, err)
		}
		found[d.Platform.Architecture] = img
	}
	return found
}

// files returns mode, owner and content of the files of an image.
func files(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for files := tar.NewReader(r); ; {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			content, readErr := io.ReadAll(files)
			if err != nil || readErr != nil {
				t.Fatal(err, readErr)
			}
			if h.ModTime.Unix() != 1700000000 || h.Uid != h.Gid {
				t.Errorf("%s is from %s, of %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
			}
			found["/"+h.Name] = fmt.Sprintf("%o %d %s", h.Mode, h.Uid, content)
		}
		_ = r.Close()
	}
	return found
}

func TestImageHoldsProgramUserZonesAndAuthorities(t *testing.T) {
	found := images(t, made(t))
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Fatalf("processors %v", got)
	}
	for arch, img := range found {
		got := files(t, img)
		roots := got["/etc/ssl/certs/ca-certificates.crt"]
		delete(got, "/etc/ssl/certs/ca-certificates.crt")
		want := map[string]string{
			"/data/": "755 65532 ", "/tmp/": "755 65532 ",
			"/etc/": "755 0 ", "/etc/ssl/": "755 0 ", "/etc/ssl/certs/": "755 0 ",
			"/usr/": "755 0 ", "/usr/share/": "755 0 ", "/usr/share/doc/": "755 0 ", "/usr/share/doc/tailrace/": "755 0 ",
			"/etc/group":                      "644 0 nonroot:x:65532:\n",
			"/etc/passwd":                     "644 0 nonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n",
			"/usr/share/doc/tailrace/LICENSE": "644 0 license",
			"/usr/share/doc/tailrace/THIRD-PARTY-NOTICES.txt": "644 0 notices",
			"/usr/share/zoneinfo.zip":                         "644 0 zones",
			"/replicator":                                     "755 0 program " + arch,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", arch, diff)
		}
		trusts(t, roots)
	}
}

// TestImageOfBulkHasTheProgramThatStartsWorkers, and no volume: it keeps nothing.
func TestImageOfBulkHasTheProgramThatStartsWorkers(t *testing.T) {
	for arch, img := range images(t, madeBulk(t)) {
		got := files(t, img)
		trusts(t, got["/etc/ssl/certs/ca-certificates.crt"])
		for path, want := range map[string]string{
			"/replicator-bulk": "755 0 program " + arch, "/opt/beam/boot": "755 0 boot " + arch, "/tmp/": "755 65532 ",
			"/data/": "", "/replicator": "", "/usr/share/zoneinfo.zip": "",
			"/usr/share/doc/tailrace/THIRD-PARTY-NOTICES.txt": "644 0 notices",
		} {
			if got[path] != want {
				t.Errorf("%s: %s is %q, want %q", arch, path, got[path], want)
			}
		}
	}
}

// trusts asserts that a file has the authorities of the clouds that the replicator talks to.
func trusts(t *testing.T, file string) {
	t.Helper()
	names := map[string]bool{}
	for rest := []byte(file); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !c.IsCA {
			t.Fatalf("%v is no authority: %v", c, err)
		}
		names[c.Subject.CommonName], rest = true, more
	}
	for _, want := range []string{
		"Amazon Root CA 1", "Amazon Root CA 3", "GTS Root R1", "GTS Root R4", "DigiCert Global Root G2", "ISRG Root X1",
	} {
		if !names[want] {
			t.Errorf("%s is not trusted, only %d others", want, len(names))
		}
	}
}

// dockerfile returns the instructions of the Dockerfile's stages by name, "" for the last one, and
// what its build stages copy and write.
func dockerfile(t *testing.T) (stages map[string]map[string][]string, all string) {
	t.Helper()
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSpace(l); !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	all = strings.ReplaceAll(strings.Join(lines, "\n"), "\\\n", "")
	stages = map[string]map[string][]string{}
	stage := ""
	for l := range strings.SplitSeq(all, "\n") {
		word, rest, _ := strings.Cut(l, " ")
		if word == "FROM" {
			_, stage, _ = strings.Cut(rest, " AS ")
		}
		if stages[stage] == nil {
			stages[stage] = map[string][]string{}
		}
		stages[stage][word] = append(stages[stage][word], strings.TrimSpace(rest))
	}
	return stages, all
}

// TestImageIsTheDockerfiles: a release's image has all that the Dockerfile makes. Licenses are in
// the former only.
func TestImageIsTheDockerfiles(t *testing.T) {
	stages, all := dockerfile(t)
	isStage(t, images(t, made(t))["amd64"], stages[""], all)
	isStage(t, images(t, madeBulk(t))["amd64"], stages["bulk"], all)
}

// isStage compares an image with a stage of the Dockerfile.
func isStage(t *testing.T, img v1.Image, last map[string][]string, all string) {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	quoted := func(words []string) string {
		if len(words) == 0 {
			return ""
		}
		return `["` + strings.Join(words, `", "`) + `"]`
	}
	for word, got := range map[string]string{
		"USER": c.User, "WORKDIR": c.WorkingDir, "ENV": strings.Join(c.Env, " "), "ENTRYPOINT": quoted(c.Entrypoint),
		"CMD": quoted(c.Cmd), "VOLUME": strings.Join(slices.Collect(maps.Keys(c.Volumes)), " "),
		"EXPOSE": strings.TrimSuffix(strings.Join(slices.Collect(maps.Keys(c.ExposedPorts)), " "), "/tcp"),
	} {
		if !slices.Equal(last[word], []string{got}) && len(last[word])+len(got) > 0 {
			t.Errorf("%s %s, in the Dockerfile %v", word, got, last[word])
		}
	}
	values := strings.NewReplacer("${VERSION}", "1.2.3", "${REVISION}", "abc")
	if labels := strings.Count(last["LABEL"][0], "org.opencontainers"); labels != len(c.Labels) {
		t.Errorf("%d labels, in the Dockerfile %d", len(c.Labels), labels)
	}
	for name, value := range c.Labels {
		if line := fmt.Sprintf("%s=%q", name, value); !strings.Contains(values.Replace(last["LABEL"][0]), line) {
			t.Errorf("the Dockerfile has no label %s", line)
		}
	}
	got := files(t, img)
	for _, copied := range last["COPY"] {
		words := strings.Fields(copied)
		target := words[len(words)-1]
		mode, ok := got[target]
		if !ok {
			mode, ok = got[target+"/"]
		}
		owned := slices.Contains(words, "--chown=65532:65532")
		if !ok || (strings.Fields(mode)[1] == "65532") != owned {
			t.Errorf("COPY %s: the image has %.20q", copied, mode)
		}
	}
	for _, path := range []string{"/etc/passwd", "/etc/group"} {
		line := strings.TrimSuffix(strings.SplitN(got[path], " ", 3)[2], "\n")
		if !strings.Contains(all, "echo '"+line+"' > /out"+path) {
			t.Errorf("the Dockerfile writes another %s than %q", path, line)
		}
	}
	if !strings.Contains(all, "/etc/ssl/certs/ca-certificates.crt /out/etc/ssl/certs/") ||
		!strings.Contains(all, "lib/time/zoneinfo.zip\" /out/usr/share/") {
		t.Error("the Dockerfile has authorities or time zones elsewhere")
	}
}

// TestImageIsReproducible: made twice, it is the same image, and the same tar file.
func TestImageIsReproducible(t *testing.T) {
	first, second := made(t), made(t)
	for _, name := range []string{"index.json", "../image.tar"} {
		a, err := os.ReadFile(filepath.Join(first, name))
		b, err2 := os.ReadFile(filepath.Join(second, name))
		if err != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s: %d bytes and %d other ones; %v, %v", name, len(a), len(b), err, err2)
		}
	}
}

// TestImageIsPushed to a registry in this process: what is pulled from there is what is in the
// layout.
func TestImageIsPushed(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/tailrace/replicator"
	dir := made(t)
	if err := run(t.Context(), []string{"push", dir, repository}); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(repository + ":1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := images(t, dir)["arm64"].Digest(); err != nil || got != want {
		t.Errorf("pulled %s, want %s; %v", got, want, err)
	}
	if got := files(t, img)["/replicator"]; got != "755 0 program arm64" {
		t.Errorf("pulled a program %q", got)
	}
}
