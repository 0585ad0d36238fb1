package raw

import "sync"

// pools are by size, so that pages of idle and of slow shards do not occupy a megabyte each.
var pools = [...]struct {
	size int
	sync.Pool
}{{size: 2 << 10}, {size: 16 << 10}, {size: 128 << 10}, {size: 512 << 10}, {size: 1<<20 + 256<<10}, {size: 4 << 20}}

// getBuffer returns an empty slice with a capacity of at least size.
func getBuffer(size int) []byte {
	for i := range pools {
		p := &pools[i]
		if size > p.size {
			continue
		}
		if b, ok := p.Get().(*[]byte); ok {
			return (*b)[:0]
		}
		return make([]byte, 0, p.size)
	}
	return make([]byte, 0, size)
}

// putBuffer gives a slice of getBuffer back.
func putBuffer(b []byte) {
	for i := range pools {
		if cap(b) == pools[i].size {
			b = b[:0]
			pools[i].Put(&b)
			return
		}
	}
}
