-- Whether a password was generated and waits for a change: "asked" of those that the
-- first start generates, "required" of those that an administrator generates for
-- others; NULL of passwords that were chosen. And when somebody first signed in with the
-- present password: then it is no longer kept in sign-in.txt.

-- +goose Up

ALTER TABLE users
    ADD COLUMN password_change  text CHECK (password_change IN ('asked', 'required')),
    ADD COLUMN password_used_at timestamptz;

-- Who was seen before has signed in, as far as is known.
UPDATE users SET password_used_at = last_seen_at WHERE password_hash IS NOT NULL AND last_seen_at IS NOT NULL;
