package frame

import (
	"sync"
)

// buffers are reused between frames: at full speed their allocation would cost more than the
// compression.
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

// work holds what packing needs for a moment: the records of a frame one after the other, and their
// encoding.
type work struct{ records, encoded []byte }

// works are reused apart from the buffers of frames, which are smaller and wait for the server.
var works = sync.Pool{New: func() any { return new(work) }}

// forRecords returns an empty buffer with a capacity of at least size bytes.
func (w *work) forRecords(size int) []byte {
	w.records = grown(w.records, size)
	return w.records
}

// forEncoding returns a buffer of at least size bytes.
func (w *work) forEncoding(size int) []byte {
	w.encoded = grown(w.encoded, size)
	return w.encoded[:cap(w.encoded)]
}

func grown(b []byte, size int) []byte {
	if cap(b) < size {
		return make([]byte, 0, size)
	}
	return b[:0]
}
