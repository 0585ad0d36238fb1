package dist

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// platforms are the systems and processors of a release, and the format of their archives.
var platforms = map[string]string{
	"linux_amd64": ".tar.gz", "linux_arm64": ".tar.gz", "darwin_amd64": ".tar.gz", "darwin_arm64": ".tar.gz",
	"windows_amd64": ".zip", "windows_arm64": ".zip",
}

// bulkPlatforms are those of replicator-bulk.
var bulkPlatforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}

// release is a directory of artefacts.
type release struct {
	dir             string
	version, commit string
}

// opened returns the release that DIST names.
func opened(t *testing.T) release {
	t.Helper()
	r := release{dir: os.Getenv("DIST")}
	if r.dir == "" {
		t.Skip("DIST is not set: `make release` makes the artefacts, and runs this test")
	}
	var m struct{ Version, Commit string }
	if err := json.Unmarshal(r.read(t, "metadata.json"), &m); err != nil || m.Version == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	r.version, r.commit = m.Version, m.Commit
	return r
}

func (r release) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (r release) archive(platform string) string {
	return "tailrace_" + r.version + "_" + platform + platforms[platform]
}

func (r release) bulk(platform string) string {
	return "tailrace-bulk_" + r.version + "_" + platform + ".tar.gz"
}

func (r release) chart() string { return "tailrace-" + r.version + ".tgz" }

// packages returns the packages by format and processor. Debian and RPM write a version before a
// release with a tilde.
func (r release) packages() map[string]string {
	v := strings.Replace(r.version, "-", "~", 1)
	return map[string]string{
		"deb amd64": "tailrace_" + v + "_amd64.deb", "deb arm64": "tailrace_" + v + "_arm64.deb",
		"rpm amd64": "tailrace-" + v + "-1.x86_64.rpm", "rpm arm64": "tailrace-" + v + "-1.aarch64.rpm",
	}
}

// TestEveryArtefactIsListedWithItsChecksum: the list has what a user downloads, no more, and each
// line is true.
func TestEveryArtefactIsListedWithItsChecksum(t *testing.T) {
	r := opened(t)
	var want []string
	for p := range platforms {
		want = append(want, r.archive(p), r.archive(p)+".spdx.json")
	}
	for _, p := range bulkPlatforms {
		want = append(want, r.bulk(p), r.bulk(p)+".spdx.json")
	}
	want = append(want, slices.Collect(maps.Values(r.packages()))...)
	for _, name := range []string{"tailrace_", "tailrace-bulk_"} {
		want = append(want, name+r.version+"_image.tar", name+r.version+"_image.spdx.json")
	}
	want = append(want, "docker-compose.yml", r.chart())
	slices.Sort(want)
	var listed []string
	for line := range strings.Lines(string(r.read(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed = append(listed, name)
		if got := sha256.Sum256(r.read(t, name)); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has the checksum %x, the list says %s", name, got, sum)
		}
	}
	if slices.Sort(listed); !slices.Equal(listed, want) {
		t.Errorf("listed\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
}

// TestArchivesHoldWhatAUserNeeds, and each the program of its platform and of this version.
func TestArchivesHoldWhatAUserNeeds(t *testing.T) {
	r := opened(t)
	for platform := range platforms {
		files := unpack(t, filepath.Join(r.dir, r.archive(platform)))
		system, processor, _ := strings.Cut(platform, "_")
		program := "replicator"
		if system == "windows" {
			program += ".exe"
		}
		for _, name := range []string{
			program, "LICENSE", "THIRD-PARTY-NOTICES.txt", "README.md", "CHANGELOG.md", "SECURITY.md", "tailrace.example.yaml",
			"man/replicator.1.gz", "man/replicator-run.1.gz",
			"completions/replicator.bash", "completions/_replicator", "completions/replicator.fish",
		} {
			if len(files[name]) == 0 {
				t.Errorf("%s has no %s", r.archive(platform), name)
			}
		}
		info, err := buildinfo.Read(bytes.NewReader(files[program]))
		if err != nil {
			t.Fatal(platform, err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		for key, want := range map[string]string{
			"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": r.commit,
		} {
			if settings[key] != want {
				t.Errorf("%s: the program's %s is %q, want %q", platform, key, settings[key], want)
			}
		}
		if !bytes.Contains(files[program], []byte(r.version)) {
			t.Errorf("%s: the program does not hold its version %s", platform, r.version)
		}
		for _, module := range []string{"github.com/nats-io/nats-server/v2", "cloud.google.com/go/bigtable"} {
			if !strings.Contains(string(files["THIRD-PARTY-NOTICES.txt"]), "==== "+module+" v") {
				t.Errorf("%s: the notices lack %s", platform, module)
			}
		}
	}
}

// TestProgramSaysItsVersion: the one for this machine is run.
func TestProgramSaysItsVersion(t *testing.T) {
	r := opened(t)
	platform := runtime.GOOS + "_" + runtime.GOARCH
	program := filepath.Join(t.TempDir(), "replicator")
	content := unpack(t, filepath.Join(r.dir, r.archive(platform)))["replicator"]
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "replicator "+r.version+" (") {
		t.Errorf("it says %q, want version %s; %v", out, r.version, err)
	}
}

// TestArchivesOfBulk hold the program of their platform and of this version, and its own notices.
func TestArchivesOfBulk(t *testing.T) {
	r := opened(t)
	for _, platform := range bulkPlatforms {
		files := unpack(t, filepath.Join(r.dir, r.bulk(platform)))
		for _, name := range []string{"replicator-bulk", "LICENSE", "bulk.md", "THIRD-PARTY-NOTICES.txt"} {
			if len(files[name]) == 0 {
				t.Errorf("%s has no %s", r.bulk(platform), name)
			}
		}
		info, err := buildinfo.Read(bytes.NewReader(files["replicator-bulk"]))
		if err != nil {
			t.Fatal(platform, err)
		}
		named := bytes.Contains(files["replicator-bulk"], []byte(r.version))
		if !strings.HasSuffix(info.Path, "/bulk/cmd/replicator-bulk") || !named {
			t.Errorf("%s: %s, without version %s", platform, info.Path, r.version)
		}
		if !bytes.Contains(files["THIRD-PARTY-NOTICES.txt"], []byte("==== github.com/apache/beam/sdks/v2 v")) {
			t.Errorf("%s: the notices lack Apache Beam", platform)
		}
	}
}

// TestSBOMsNameTheModules: SPDX documents that name the project, its version, and modules of the
// program.
func TestSBOMsNameTheModules(t *testing.T) {
	r := opened(t)
	names := []string{"tailrace_" + r.version + "_image.spdx.json", "tailrace-bulk_" + r.version + "_image.spdx.json"}
	for p := range platforms {
		names = append(names, r.archive(p)+".spdx.json")
	}
	for _, name := range names {
		var d struct {
			SPDXVersion string `json:"spdxVersion"`
			Packages    []struct {
				Name    string `json:"name"`
				Version string `json:"versionInfo"`
			} `json:"packages"`
		}
		if err := json.Unmarshal(r.read(t, name), &d); err != nil || !strings.HasPrefix(d.SPDXVersion, "SPDX-") {
			t.Errorf("%s: %s, %v", name, d.SPDXVersion, err)
		}
		versions := map[string]string{}
		for _, p := range d.Packages {
			versions[p.Name] = p.Version
		}
		if got := cmp.Or(versions["tailrace"], versions["tailrace-bulk"]); got != r.version {
			t.Errorf("%s is about version %q", name, got)
		}
		for _, module := range []string{"github.com/nats-io/nats-server/v2", "cloud.google.com/go/bigtable", "stdlib"} {
			if versions[module] == "" {
				t.Errorf("%s lacks %s; it has %d packages", name, module, len(versions))
			}
		}
	}
}

var formulaPair = regexp.MustCompile(`url "([^"]+)"(?:,[^\n]*)?\s+sha256 "([0-9a-f]{64})"`)

// TestFormulaNamesTheArchives: each with its checksum, for macOS and Linux.
func TestFormulaNamesTheArchives(t *testing.T) {
	r := opened(t)
	formula := string(r.read(t, "homebrew/Formula/tailrace.rb"))
	if !strings.Contains(formula, fmt.Sprintf("version %q", r.version)) {
		t.Errorf("the formula is of another version than %s", r.version)
	}
	pairs := formulaPair.FindAllStringSubmatch(formula, -1)
	if len(pairs) != 4 {
		t.Errorf("the formula names %d archives:\n%s", len(pairs), formula)
	}
	for _, p := range pairs {
		name := p[1][strings.LastIndex(p[1], "/")+1:]
		if sum := sha256.Sum256(r.read(t, name)); hex.EncodeToString(sum[:]) != p[2] {
			t.Errorf("the formula has another checksum of %s", name)
		}
	}
}

// TestScoopManifestNamesTheArchives of Windows, each with its checksum.
func TestScoopManifestNamesTheArchives(t *testing.T) {
	r := opened(t)
	var m struct {
		Version      string
		Architecture map[string]struct {
			URL  string
			Bin  []string
			Hash string
		}
	}
	if err := json.Unmarshal(r.read(t, "scoop/tailrace.json"), &m); err != nil {
		t.Fatal(err)
	}
	if m.Version != r.version || len(m.Architecture) != 2 {
		t.Errorf("version %s, %d architectures", m.Version, len(m.Architecture))
	}
	for name, a := range m.Architecture {
		archive := a.URL[strings.LastIndex(a.URL, "/")+1:]
		sum := sha256.Sum256(r.read(t, archive))
		if hex.EncodeToString(sum[:]) != a.Hash {
			t.Errorf("%s: another checksum of %s", name, archive)
		}
		files := unpack(t, filepath.Join(r.dir, archive))
		for _, bin := range a.Bin {
			if path := strings.ReplaceAll(bin, `\\`, "/"); len(files[path[strings.LastIndex(path, "/")+1:]]) == 0 {
				t.Errorf("%s: %s is not in %s", name, bin, archive)
			}
		}
	}
}

// TestChartIsPackaged: of this version, without the values of tests, and with the image where the
// release pushes it. helm renders it.
func TestChartIsPackaged(t *testing.T) {
	r := opened(t)
	files := unpack(t, filepath.Join(r.dir, r.chart()))
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "README.md"} {
		if len(files[name]) == 0 {
			t.Errorf("no %s in %s", name, r.chart())
		}
	}
	for name := range files {
		if strings.HasPrefix(name, "ci/") {
			t.Errorf("%s has %s", r.chart(), name)
		}
	}
	image := "tailrace/replicator"
	if v := os.Getenv("IMAGE"); v != "" {
		image = v
	}
	if !strings.Contains(string(files["Chart.yaml"]), "image: "+image+":"+r.version+"\n") {
		t.Errorf("Artifact Hub is shown another image than %s:%s:\n%s", image, r.version, files["Chart.yaml"])
	}
	if strings.Contains(string(files["README.md"]), "](../") {
		t.Error("links of README.md lead nowhere outside of the repository")
	}
	helm := os.Getenv("HELM")
	if helm == "" {
		t.Skip("HELM is not set")
	}
	out, err := exec.CommandContext(t.Context(), helm, "template", "shop", filepath.Join(r.dir, r.chart()),
		"--values", "../../../deploy/helm/ci/minimal.yaml").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "image: "+image+":"+r.version+"\n") {
		t.Errorf("%v: no image %s:%s in\n%s", err, image, r.version, out)
	}
}

// TestListOfChecksumsIsSigned where there is a cosign: it accepts the signature, and refuses
// another list.
func TestListOfChecksumsIsSigned(t *testing.T) {
	r := opened(t)
	cosign, key := os.Getenv("SIGNED"), os.Getenv("COSIGN_PUBLIC_KEY")
	if cosign == "" {
		t.Skip("there is no cosign here, so nothing was signed")
	}
	if len(r.read(t, "SHA256SUMS.sigstore.json")) == 0 {
		t.Fatal("the signature is empty")
	}
	if key == "" {
		t.Skip("COSIGN_PUBLIC_KEY names no key to verify with")
	}
	verify := func(list string) error {
		return exec.CommandContext(t.Context(), cosign, "verify-blob", "--key", key, "--private-infrastructure",
			"--bundle", filepath.Join(r.dir, "SHA256SUMS.sigstore.json"), list).Run()
	}
	other := filepath.Join(t.TempDir(), "SHA256SUMS")
	if err := os.WriteFile(other, []byte("another list\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verify(filepath.Join(r.dir, "SHA256SUMS")); err != nil {
		t.Errorf("the signature is refused: %v", err)
	}
	if err := verify(other); err == nil {
		t.Error("the signature is accepted for another list")
	}
}
