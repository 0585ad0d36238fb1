package dynamo_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

// TestPythonSession runs a session through boto3, where there is one.
func TestPythonSession(t *testing.T) {
	if err := exec.Command("python3", "-c", "import boto3").Run(); err != nil {
		t.Skip("no boto3 on this machine")
	}
	r := newRig(t)
	out, err := exec.Command("python3", "testdata/session.py", r.url).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestCommandLineSession runs a session through the AWS CLI, where there is one. With -update it
// writes what it prints.
func TestCommandLineSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long: the AWS CLI takes 30 s; make test runs it")
	}
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("no aws CLI on this machine")
	}
	r := newRig(t)
	cmd := exec.Command("bash", "testdata/session.sh")
	cmd.Env = append(os.Environ(), "ENDPOINT="+r.url, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b",
		"AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if *update {
		if err := os.WriteFile("testdata/session.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
