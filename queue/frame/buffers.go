package frame

import (
	"sync"
)

// buffers are reused between frames: at full speed their allocation would cost more than the compression.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Buffer returns an empty buffer with a capacity of at least size bytes.
func Buffer(size int) *[]byte {
	b := buffers.Get().(*[]byte)
	if cap(*b) < size {
		*b = make([]byte, 0, max(size, 64<<10))
	}
	*b = (*b)[:0]
	return b
}

// Recycle gives b back for later calls of Buffer; nil is allowed.
func Recycle(b *[]byte) {
	if b != nil {
		buffers.Put(b)
	}
}
