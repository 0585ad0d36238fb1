package raw

import "sync"

// Pools by size, so that the pages of idle and of slow shards do not hold a megabyte each.
var pools = [...]struct {
	size int
	sync.Pool
}{{size: 2 << 10}, {size: 16 << 10}, {size: 128 << 10}, {size: 512 << 10}, {size: 1<<20 + 256<<10}, {size: 4 << 20}}

// getBuffer returns an empty slice of at least that capacity.
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

func putBuffer(b []byte) {
	for i := range pools {
		if cap(b) == pools[i].size {
			b = b[:0]
			pools[i].Put(&b)
			return
		}
	}
}
