package idp

import "time"

// SetClock gives a client another clock.
func SetClock(c *Client, now func() time.Time) { c.now = now }
