# The web server: its page and its configuration. The work is in files/web.sh, so that a machine without Chef can
# do the same.
execute 'web' do
  command "sh #{File.expand_path('../files/web.sh', __dir__)}"
  environment(
    'HOST' => node['loom']['hostname'].to_s, 'TITLE' => node['web']['title'].to_s,
    'BACKENDS' => node['haproxy']['backends'].to_s, 'UNIT' => node['site'] ? node['site']['unit'].to_s : ''
  )
end
