package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// File is one file to put on a machine.
type File struct {
	// Path on the machine, absolute; its directory must exist.
	Path string
	// Mode holds permission bits; 0 means 0644.
	Mode fs.FileMode
	// Root makes root the owner, through sudo for other users.
	Root    bool
	Content io.Reader
}

// Upload writes a file beside its place and renames it, so that nobody ever
// sees half of it. It goes over a command, not SFTP, which not every machine has.
func (c *Conn) Upload(ctx context.Context, f File) error {
	if !path.IsAbs(f.Path) {
		return fail(ErrFailed, nil, "upload to %q: the path must be absolute", f.Path)
	}
	mode := f.Mode.Perm()
	if mode == 0 {
		mode = 0o644
	}
	temporary := path.Join(path.Dir(f.Path), "."+path.Base(f.Path)+"."+nonce())
	content := f.Content
	if content == nil {
		content = bytes.NewReader(nil)
	}
	counted := &countingReader{from: content}
	what := "upload of " + f.Path
	out, err := c.Run(ctx, what, Command{Root: f.Root, Stdin: counted,
		Text: fmt.Sprintf("umask 077; cat >%[1]s && wc -c <%[1]s && chmod %04[2]o %[1]s", Quote(temporary), mode)})
	var size int64
	if err == nil && counted.err == nil {
		if _, err = fmt.Sscan(out.Stdout, &size); err == nil && size == counted.n {
			_, err = c.Run(ctx, what, Command{Root: f.Root, Text: fmt.Sprintf("mv -f %s %s", Quote(temporary), Quote(f.Path))})
			return err
		}
		err = fail(ErrFailed, err, "%s is not whole: %d of %d bytes", what, size, counted.n)
	}
	// The remains go even when ctx has ended; nothing more can be done if this fails.
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConnectTimeout)
	defer cancel()
	_, _ = c.Exec(cleaning, Command{Root: f.Root, Text: "rm -f " + Quote(temporary)})
	if counted.err != nil {
		return fmt.Errorf("read what goes to %s: %w", f.Path, counted.err)
	}
	return err
}

// countingReader remembers how much was read and what went wrong.
type countingReader struct {
	from io.Reader
	n    int64
	err  error
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.n += int64(n)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
