# Starts the service of the operating system that the action names. The work is in files/service.sh, so that a machine without Chef can
# do the same.
execute 'service' do
  command "sh #{File.expand_path('../files/service.sh', __dir__)}"
  environment(
    'HOST' => node['loom']['hostname'].to_s, 'TITLE' => node['web']['title'].to_s,
    'BACKENDS' => node['haproxy']['backends'].to_s, 'UNIT' => node['site'] ? node['site']['unit'].to_s : ''
  )
end
