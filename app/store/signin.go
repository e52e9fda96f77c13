package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// signInMaxWait is the longest wait before a further try, in seconds.
const signInMaxWait = 60

// SignInCount is a count of failed sign-ins: Free of them have no consequence. With a
// Window they are those since it began, else those since the last one that succeeded.
type SignInCount struct {
	Subject string
	Free    int
	Window  time.Duration
}

// beginSignIn counts a try before the password is looked at, so that many at
// once cannot pass the limit together. The wait after n tries too many is 1 s,
// doubled for each further one, at most 60 s. The row lock of the upsert makes
// tries of one subject take turns. A subject whose window is over starts again.
const beginSignIn = `
INSERT INTO sign_in_failures AS f (subject, failures, since, last_at) VALUES ($1, 1, now(), now())
ON CONFLICT (subject) DO UPDATE SET
	failures = CASE WHEN $3 > 0 AND f.since < now() - make_interval(secs => $3) THEN 1 ELSE f.failures + 1 END,
	since    = CASE WHEN $3 > 0 AND f.since < now() - make_interval(secs => $3) THEN now() ELSE f.since END,
	last_at  = now()
WHERE f.failures < $2
	OR ($3 > 0 AND f.since < now() - make_interval(secs => $3))
	OR f.last_at + make_interval(secs => least($4, power(2, least(f.failures - $2, 10)))) <= now()
RETURNING true`

const signInWait = `
SELECT extract(epoch FROM last_at + make_interval(secs => least($3, power(2, least(greatest(failures - $2, 0), 10)))) - now())
FROM sign_in_failures WHERE subject = $1`

// BeginSignIn counts a try as failed, in advance, in each of the counts: their order
// must be the same for all. A wait above zero means that it must not be made now, and
// when it may; the whole transaction is then to be rolled back.
func BeginSignIn(ctx context.Context, tx *sqlx.Tx, counts []SignInCount) (wait time.Duration, err error) {
	for _, c := range counts {
		var counted []bool
		if err := tx.SelectContext(ctx, &counted, beginSignIn, c.Subject, c.Free, c.Window.Seconds(), signInMaxWait); err != nil {
			return 0, wrap(err, "count a sign-in")
		}
		if len(counted) == 1 {
			continue
		}
		var seconds float64
		if err := tx.GetContext(ctx, &seconds, signInWait, c.Subject, c.Free, signInMaxWait); err != nil {
			return 0, wrap(err, "read how long to wait")
		}
		return max(time.Duration(seconds*float64(time.Second)), 10*time.Millisecond), nil
	}
	return 0, nil
}

// SignInSucceeded takes back what BeginSignIn counted: of a count with a window the one
// try, of others all.
func SignInSucceeded(ctx context.Context, tx *sqlx.Tx, counts []SignInCount) error {
	for _, c := range counts {
		statement := `DELETE FROM sign_in_failures WHERE subject = $1`
		if c.Window > 0 {
			statement = `UPDATE sign_in_failures SET failures = greatest(failures - 1, 0) WHERE subject = $1`
		}
		if _, err := tx.ExecContext(ctx, statement, c.Subject); err != nil {
			return wrap(err, "take back a failed sign-in")
		}
	}
	return nil
}

// TouchSignIn writes to the counts without changing them, so that a user who is not
// there costs as much time as one who is.
func TouchSignIn(ctx context.Context, tx *sqlx.Tx, counts []SignInCount) error {
	for _, c := range counts {
		if _, err := tx.ExecContext(ctx, `UPDATE sign_in_failures SET failures = failures WHERE subject = $1`, c.Subject); err != nil {
			return wrap(err, "touch failed sign-ins")
		}
	}
	return nil
}

// ForgetSignIns deletes the counts whose subjects begin with one of the texts, and says
// how many there were.
func ForgetSignIns(ctx context.Context, tx *sqlx.Tx, begin ...string) (int, error) {
	forgotten := 0
	for _, text := range begin {
		done, err := tx.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE starts_with(subject, $1)`, text)
		if err != nil {
			return 0, wrap(err, "forget failed sign-ins")
		}
		n, err := done.RowsAffected()
		if err != nil {
			return 0, wrap(err, "count forgotten sign-ins")
		}
		forgotten += int(n)
	}
	return forgotten, nil
}
