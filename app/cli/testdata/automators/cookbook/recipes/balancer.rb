# The balancer in front of the web servers. The work is in files/balancer.sh, so that a machine without Chef can
# do the same.
execute 'balancer' do
  command "sh #{File.expand_path('../files/balancer.sh', __dir__)}"
  environment(
    'HOST' => node['loom']['hostname'].to_s, 'TITLE' => node['web']['title'].to_s,
    'BACKENDS' => node['haproxy']['backends'].to_s, 'UNIT' => node['site'] ? node['site']['unit'].to_s : ''
  )
end
