package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// Limits of failed sign-ins (entities.md 21.1).
const (
	signInFreeUser      = 5  // wrong ones in a row for a user
	signInFreeAddress   = 50 // from an address, within the window
	signInWindowSeconds = 600
	signInMaxWait       = 60 // seconds
)

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

// BeginSignIn counts a try of a user from an address as failed, in advance. A
// wait above zero means that it must not be made now, and when it may; the whole
// transaction is then to be rolled back.
func BeginSignIn(ctx context.Context, tx *sqlx.Tx, user, address string) (wait time.Duration, err error) {
	for _, s := range []struct {
		subject      string
		free, window int
	}{{"address:" + address, signInFreeAddress, signInWindowSeconds}, {"user:" + user, signInFreeUser, 0}} {
		if s.subject == "address:" {
			continue
		}
		var counted []bool
		if err := tx.SelectContext(ctx, &counted, beginSignIn, s.subject, s.free, s.window, signInMaxWait); err != nil {
			return 0, wrap(err, "count a sign-in")
		}
		if len(counted) == 1 {
			continue
		}
		var seconds float64
		if err := tx.GetContext(ctx, &seconds, signInWait, s.subject, s.free, signInMaxWait); err != nil {
			return 0, wrap(err, "read how long to wait")
		}
		return max(time.Duration(seconds*float64(time.Second)), 10*time.Millisecond), nil
	}
	return 0, nil
}

// SignInSucceeded forgets the failures of a user and takes back the one that
// BeginSignIn counted for the address.
func SignInSucceeded(ctx context.Context, tx *sqlx.Tx, user, address string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE sign_in_failures SET failures = greatest(failures - 1, 0) WHERE subject = $1`, "address:"+address); err != nil {
		return wrap(err, "take back a failed sign-in")
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE subject = $1`, "user:"+user)
	return wrap(err, "forget failed sign-ins")
}

// TouchSignIn writes to the count of failed sign-ins of a user without changing
// it, so that one who is not there costs as much time as one who is.
func TouchSignIn(ctx context.Context, tx *sqlx.Tx, user string) error {
	_, err := tx.ExecContext(ctx, `UPDATE sign_in_failures SET failures = failures WHERE subject = $1`, "user:"+user)
	return wrap(err, "touch failed sign-ins")
}
