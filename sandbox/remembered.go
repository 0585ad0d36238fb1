package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rememberedDial is how long a server on loopback has to accept a connection.
const rememberedDial = time.Second

// rememberedPath returns the file of the variables.
func rememberedPath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "tailrace", "sandbox.env"), nil
}

// Remember stores the variables of a sandbox that listens. The returned function removes them,
// unless another sandbox has replaced them; it is never nil.
func Remember(env []string) (forget func(), err error) {
	forget = func() {}
	file, err := rememberedPath()
	if err != nil {
		return forget, fmt.Errorf("find cache directory: %w", err)
	}
	text := []byte(strings.Join(env, "\n") + "\n")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return forget, fmt.Errorf("remember sandbox: %w", err)
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".sandbox-*")
	if err != nil {
		return forget, fmt.Errorf("remember sandbox: %w", err)
	}
	_, err = part.Write(text)
	if closed := part.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return forget, fmt.Errorf("remember sandbox: %w", err)
	}
	return func() {
		if now, err := os.ReadFile(file); err == nil && bytes.Equal(now, text) {
			_ = os.Remove(file)
		}
	}, nil
}

// RememberedEnv returns the variables of the sandbox that was started last; nil when it does not
// listen any more.
func RememberedEnv(ctx context.Context) []string {
	file, err := rememberedPath()
	if err != nil {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	env := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		if name != "AWS_ENDPOINT_URL" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil {
			return nil
		}
		conn, err := (&net.Dialer{Timeout: rememberedDial}).DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		return env
	}
	return nil
}
