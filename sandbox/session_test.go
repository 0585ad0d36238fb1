package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// TestStreamsThroughBoto3 runs a session through boto3, where there is one.
func TestStreamsThroughBoto3(t *testing.T) {
	if err := exec.Command("python3", "-c", "import boto3").Run(); err != nil {
		t.Skip("no boto3 on this machine")
	}
	s := sandbox.Test(t, sandbox.Options{NoBigtable: true, NoNATS: true})
	out, err := exec.Command("python3", "testdata/streams.py", s.Endpoint()).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestExportSession makes an export with the AWS CLI, where there is one, and copies it from S3.
func TestExportSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long: starts the AWS CLI a dozen times; make test runs it")
	}
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("no aws on this machine")
	}
	script, err := filepath.Abs("testdata/exports.sh")
	if err != nil {
		t.Fatal(err)
	}
	s := sandbox.Test(t, sandbox.Options{NoBigtable: true, NoNATS: true})
	cmd := exec.Command("bash", "-e", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(append(os.Environ(), s.Env()...), "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1", "HOME="+cmd.Dir,
		"PYENV_VERSION="+os.Getenv("PYENV_VERSION"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "ENABLED\nmake_bucket: backups\nCOMPLETED FULL_EXPORT\n4\n1\n" +
		`{"Item":{"pk":{"S":"hat"},"price":{"N":"1"}}}` + "\nx"
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// TestShellSession runs the environment's lines through a shell with the AWS CLI and
// cbt, where there are both.
func TestShellSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long: starts the AWS CLI five times; make test runs it")
	}
	for _, tool := range []string{"aws", "cbt"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool + " on this machine")
		}
	}
	s := sandbox.Test(t, sandbox.Options{NoNATS: true, Partitions: 1})
	cmd := exec.Command("bash", "-e", "testdata/session.sh")
	cmd.Env = append(append(os.Environ(), s.Env()...), "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1", "HOME="+t.TempDir(),
		"PYENV_VERSION="+os.Getenv("PYENV_VERSION"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "INSERT 1\nUNAVAILABLE\nkept\n"
	if string(out) != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}
