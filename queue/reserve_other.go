//go:build !linux

package queue

import (
	"os"
)

func allocate(f *os.File, size int64) error { return allocateZeros(f, size) }
