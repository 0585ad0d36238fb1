package main

import (
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/change"
)

// timeOrNil returns a time of the service's clock, or nil for 0, which means unknown.
func timeOrNil(ms change.Millis) *time.Time {
	if ms == 0 {
		return nil
	}
	t := ms.Time().UTC()
	return &t
}

// localTime returns a time for people, in their zone.
func localTime(t *time.Time) string {
	if t == nil {
		return "unknown"
	}
	return t.Local().Format(time.DateTime)
}

// shellQuote returns s as one word of a POSIX shell.
func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// whoami returns user and host of the command, for the log.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// must panics on an error that only a mistake in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
