//go:build unix

package cli

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// becomeUser makes a process of root a process of a user, for good, with its groups and its home.
// Others stay what they are, and so does root where there is no such user: in the container image.
func becomeUser(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	if err := os.Setenv("HOME", u.HomeDir); err != nil { // root's files of credentials cannot be read any more
		return err
	}
	return errors.Join(syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid))
}
