package failpoint

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// postgresPort is where PostgreSQL listens unless told otherwise.
const postgresPort = 5432

// cut shuts down every socket of this process that leads to PostgreSQL, whoever
// opened it: pools, River's own and those that listen.
func cut() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if peer, err := syscall.Getpeername(fd); err == nil && isPostgres(peer) {
			syscall.Shutdown(fd, syscall.SHUT_RDWR) //nolint:errcheck // it may be closed already
		}
	}
}

func isPostgres(peer syscall.Sockaddr) bool {
	switch a := peer.(type) {
	case *syscall.SockaddrUnix:
		return strings.Contains(a.Name, ".s.PGSQL.")
	case *syscall.SockaddrInet4:
		return a.Port == postgresPort
	case *syscall.SockaddrInet6:
		return a.Port == postgresPort
	}
	return false
}
