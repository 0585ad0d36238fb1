package apply

import (
	"math/bits"
	"sync"
)

// buffers holds used buffers of unpacked frames by size class, the power of two that holds them, so
// that a small frame does not keep a large one's buffer. The changes of a frame alias its buffer
// until the last of them is durable.
var buffers [largestClass + 1]sync.Pool

// largestClass caps the buffer that is allocated from an entry's claimed size. No frame is as
// large; the data behind the claim is checked when it is unpacked.
const largestClass = 26

const smallestBuffer = 1 << 16

// bufferClass returns the power of two of the buffers that hold size bytes.
func bufferClass(size int) int { return min(bits.Len(uint(max(size, smallestBuffer)-1)), largestClass) }

// getBuffer returns a used buffer of the class, or a new one.
func getBuffer(class int) *[]byte {
	if buf, ok := buffers[class].Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, 1<<class)
	return &buf
}

// putBuffer keeps a buffer for the next Get of its class.
func putBuffer(buf *[]byte) { buffers[bufferClass(cap(*buf))].Put(buf) }
