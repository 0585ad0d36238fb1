package dist

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"
)

// packed are the files of a package, by their path without the first slash, and what it says of
// itself.
type packed struct {
	files   map[string]file
	config  []string // files that an upgrade leaves as they are
	version string
	scripts map[string]string
}

// debian reads a Debian package.
func debian(t *testing.T, name string) (p packed) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p.scripts = map[string]string{}
	for r := ar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		switch strings.TrimSuffix(strings.TrimSpace(h.Name), "/") {
		case "data.tar.gz":
			p.files = untar(t, gunzip(t, part))
		case "control.tar.gz":
			control := untar(t, gunzip(t, part))
			p.config = strings.Fields(string(control["conffiles"].content))
			for line := range strings.Lines(string(control["control"].content)) {
				if v, ok := strings.CutPrefix(line, "Version: "); ok {
					p.version = strings.TrimSpace(v)
				}
			}
			for _, script := range []string{"postinst", "prerm", "postrm"} {
				p.scripts[script] = string(control[script].content)
			}
		}
	}
}

// rpm reads an RPM package.
func rpm(t *testing.T, name string) (p packed) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := rpmutils.ReadRpm(f)
	if err != nil {
		t.Fatal(err)
	}
	nevra, err := r.Header.GetNEVRA()
	if err != nil {
		t.Fatal(err)
	}
	p.version, p.files, p.scripts = nevra.Version, map[string]file{}, map[string]string{}
	for script, tag := range map[string]int{
		"postinst": rpmutils.POSTIN, "prerm": rpmutils.PREUN, "postrm": rpmutils.POSTUN,
	} {
		if p.scripts[script], err = r.Header.GetString(tag); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	}
	infos, err := r.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if info.Flags()&rpmutils.RPMFILE_CONFIG != 0 {
			p.config = append(p.config, info.Name())
		}
	}
	payload, err := r.PayloadReaderExtended()
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := payload.Next()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(payload)
		if err != nil {
			t.Fatal(err)
		}
		p.files[strings.TrimPrefix(info.Name(), "/")] = file{int64(info.Mode() & 0o777), content}
	}
}

// TestPackagesInstallAService: program, unit, user, configuration, manual, completions, licenses,
// and the scripts of the repository.
func TestPackagesInstallAService(t *testing.T) {
	r := opened(t)
	archived := unpack(t, filepath.Join(r.dir, r.archive("linux_amd64")))["replicator"]
	for kind, name := range r.packages() {
		open := debian
		if strings.HasPrefix(kind, "rpm") {
			open = rpm
		}
		p := open(t, filepath.Join(r.dir, name))
		if want := strings.Replace(r.version, "-", "~", 1); p.version != want {
			t.Errorf("%s is version %s, want %s", name, p.version, want)
		}
		for path, mode := range map[string]int64{
			"usr/bin/replicator":                                  0o755,
			"usr/lib/systemd/system/tailrace.service":             0o644,
			"usr/lib/sysusers.d/tailrace.conf":                    0o644,
			"etc/tailrace/tailrace.yaml":                          0o644,
			"usr/share/man/man1/replicator.1.gz":                  0o644,
			"usr/share/man/man1/replicator-run.1.gz":              0o644,
			"usr/share/doc/tailrace/copyright":                    0o644,
			"usr/share/doc/tailrace/CHANGELOG.md":                 0o644,
			"usr/share/doc/tailrace/alerts.yaml":                  0o644,
			"usr/share/zsh/site-functions/_replicator":            0o644,
			"usr/share/doc/tailrace/THIRD-PARTY-NOTICES.txt":      0o644,
			"usr/share/bash-completion/completions/replicator":    0o644,
			"usr/share/fish/vendor_completions.d/replicator.fish": 0o644,
		} {
			if f, ok := p.files[path]; !ok || f.mode&0o777 != mode || len(f.content) == 0 {
				t.Errorf("%s: /%s is there: %v, mode %o, %d bytes", name, path, ok, f.mode, len(f.content))
			}
		}
		unit := string(p.files["usr/lib/systemd/system/tailrace.service"].content)
		if !strings.Contains(unit, "\nRestart=on-failure\n") || strings.Contains(unit, "RestartPreventExitStatus") {
			t.Errorf("%s: the service stays down after some failure", name)
		}
		if len(p.config) != 1 || p.config[0] != "/etc/tailrace/tailrace.yaml" {
			t.Errorf("%s: an upgrade leaves %v as they are", name, p.config)
		}
		if config := string(p.files["etc/tailrace/tailrace.yaml"].content); strings.Contains(config, "./tailrace-") ||
			!strings.Contains(config, "dir: /var/lib/tailrace ") {
			t.Errorf("%s: the configuration keeps its log where the service may not write", name)
		}
		for script, got := range p.scripts {
			want, err := os.ReadFile("../../../deploy/linux/" + script + ".sh")
			if err != nil || strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
				t.Errorf("%s: %s is\n%s\n%v", name, script, got, err)
			}
		}
		if strings.HasSuffix(kind, "amd64") && !bytes.Equal(p.files["usr/bin/replicator"].content, archived) {
			t.Errorf("%s has another program than the archive", name)
		}
	}
}
