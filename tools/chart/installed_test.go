package chart

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// service is the user of the service in the file system of TestRootGoesOnAsTheService.
const service = 4242

// TestRootGoesOnAsTheService: in a file system as a package leaves it, commands find configuration
// and environment without a flag, and what root's commands make beside the log is the service's.
// Only root can change its root directory.
func TestRootGoesOnAsTheService(t *testing.T) {
	program := os.Getenv("REPLICATOR")
	if program == "" || os.Geteuid() != 0 {
		t.Skip("REPLICATOR is not set, or this is not root")
	}
	root := packageRoot(t, program)
	if out, err := status(t, root, 0); err != nil || !strings.Contains(out, "Products") {
		t.Errorf("root: %v\n%s", err, out)
	}
	files := 0
	err := filepath.WalkDir(filepath.Join(root, "var/lib/tailrace"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if files++; info.Sys().(*syscall.Stat_t).Uid != service {
			t.Errorf("%s is not the service's", path)
		}
		return nil
	})
	if err != nil || files < 2 {
		t.Errorf("%d files beside the log: %v", files, err)
	}
	if out, err := status(t, root, service); err == nil || !strings.Contains(out, "run it with sudo") {
		t.Errorf("without the environment: %v\n%s", err, out)
	}
}

// status runs the program in another root directory, as a user.
func status(t *testing.T, root string, uid uint32) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/usr/bin/replicator", "status")
	cmd.Dir, cmd.Env = "/", []string{"AWS_EC2_METADATA_DISABLED=true"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// packageRoot makes the files of an installation that a command reads.
func packageRoot(t *testing.T, program string) string {
	t.Helper()
	root := t.TempDir()
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name string
		mode fs.FileMode
		text string
	}{
		{"usr/bin/replicator", 0o755, string(binary)},
		{"etc/passwd", 0o644, "root:x:0:0::/root:/bin/sh\ntailrace:x:4242:4242::/var/lib/tailrace:/usr/sbin/nologin\n"},
		{"etc/group", 0o644, "root:x:0:\ntailrace:x:4242:\n"},
		{"etc/tailrace/environment", 0o600, "# of the service\nDYNAMODB=\"http://127.0.0.1:1\"\n"},
		{"etc/tailrace/tailrace.yaml", 0o644, `
pipeline: shop
source: {region: eu-west-1, endpoint: "${DYNAMODB}"}
bigtable: {project: acme, instance: main, endpoint: "127.0.0.1:1"}
queue: {dir: /var/lib/tailrace, max_bytes: 1GiB}
tables:
- {source: Products, target: products}
`},
	} {
		path := filepath.Join(root, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(root, "var/lib/tailrace")
	if err := os.MkdirAll(filepath.Dir(state), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(state, service, service); err != nil {
		t.Fatal(err)
	}
	return root
}
