import { mount } from 'svelte';
import App from './App.svelte';
import './styles/base.css';
import './styles/parts.css';
import './styles/marks.css';
import './styles/annotate.css';

mount(App, { target: document.getElementById('app')! });
