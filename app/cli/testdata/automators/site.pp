# One manifest for all actions: the fact says which service is meant.
case $facts['loom']['service'] {
  'nginx': { include site::web }
  'haproxy': { include site::balancer }
  default: { fail("no service ${facts['loom']['service']}") }
}
