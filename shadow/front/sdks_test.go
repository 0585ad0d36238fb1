package front_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sandbox/fault"
	"github.com/tailrace-cdc/replicator/shadow/front"
)

// TestOtherSDKs runs boto3, the AWS CLI and the SDK for Java 2 through both fronts, where they are.
func TestOtherSDKs(t *testing.T) {
	w := newWorld(t)
	for mode, title := range map[front.Mode]string{front.Keep: "keep", front.Sign: "sign"} {
		t.Run("boto3 "+title, func(t *testing.T) {
			if err := exec.Command("python3", "-c", "import boto3").Run(); err != nil {
				t.Skip("no boto3 on this machine")
			}
			inject(t, w, fault.Rule{Effect: fault.Cut, Operation: "Query", Times: 1})
			cmd := exec.Command("python3", "testdata/session.py")
			cmd.Env = append(os.Environ(), w.environment(mode)...)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "ok") {
				t.Errorf("%v\n%s", err, out)
			}
		})
		t.Run("aws "+title, func(t *testing.T) {
			if testing.Short() {
				t.Skip("long: starts the AWS CLI; make test runs it")
			}
			if _, err := exec.LookPath("aws"); err != nil {
				t.Skip("no aws on this machine")
			}
			cmd := exec.Command("aws", "dynamodb", "get-item", "--table-name", "Orders", "--key",
				`{"pk":{"S":"a"},"sk":{"S":"b"}}`, "--output", "text", "--query", "Item.n.N")
			cmd.Env = append(append(os.Environ(), w.environment(mode)...), "HOME="+t.TempDir(),
				"PYENV_VERSION="+os.Getenv("PYENV_VERSION"))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "1\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
		t.Run("java "+title, func(t *testing.T) {
			jars := os.Getenv("AWS_SDK_JAVA_JARS")
			if jars == "" {
				t.Skip("AWS_SDK_JAVA_JARS names no directory with the jars of testdata/java/pom.xml")
			}
			cmd := exec.Command("java", "-cp", filepath.Join(jars, "*"), "testdata/java/Session.java")
			cmd.Env = append(os.Environ(), w.environment(mode)...)
			before := w.taken.Load()
			if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "ok\n") {
				t.Errorf("%v\n%s", err, out)
			}
			if passed := w.taken.Load() - before; passed < 27 {
				t.Errorf("%d requests went through the front, not 27", passed)
			}
		})
	}
}
